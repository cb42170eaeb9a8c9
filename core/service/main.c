/* main.c - the program inference-core, whose code is in the library. */

#include "core/service/core_main.h"

int
main(int argc, char **argv)
{
    return inf_core_main(argc, argv);
}
