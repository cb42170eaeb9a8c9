/* main.c - the program inference-core: everything is in the library. */

#include "core/service/core_main.h"

int
main(int argc, char **argv)
{
    return inf_core_main(argc, argv);
}
