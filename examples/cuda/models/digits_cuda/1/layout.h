// Sizes of the layers, and where each part of weights.bin begins, in floats.
#define PIXELS   64
#define UNITS    64
#define DIGITS   10
#define INK      16.0f

#define MATRIX_1 0
#define BIAS_1   (MATRIX_1 + PIXELS * UNITS)
#define MATRIX_2 (BIAS_1 + UNITS)
#define BIAS_2   (MATRIX_2 + UNITS * DIGITS)
