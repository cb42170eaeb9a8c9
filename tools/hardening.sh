# hardening.sh - what the compiler and the linker are told to check, for all
# programs and libraries of ours.  The build's scripts source this file,
# hardening.cmake reads it; t/00-build/test_hardening.py looks at the results.
#
# Not with sanitizers, which see more, and whose functions -D_FORTIFY_SOURCE
# would go around.  That one needs optimisation.

harden_cc="-fstack-protector-strong -fstack-clash-protection -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3"
harden_ld="-Wl,-z,relro,-z,now,-z,noexecstack"
