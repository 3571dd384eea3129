/* Descent inside of descent, with the derivative of what the inner one finds by hand, forward and in reverse.

The inner one minimises |A w - t|^2 / 20 + exp(h) |w|^2 until no w moves by more than a tolerance, the outer one
|B w - s|^2 / 20 by h. A and B have 20 rows of 8. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 20, SIZE = 8 };

static void add_product(double *into, const double *matrix, const double *w, const double *shift)
{
    for (int i = 0; i < ROWS; i++) {
        double r = shift ? -shift[i] : 0.0;
        for (int j = 0; j < SIZE; j++) r += matrix[i * SIZE + j] * w[j];
        for (int j = 0; j < SIZE; j++) into[j] += matrix[i * SIZE + j] * r;
    }
}

static int moves(const double *w, const double *before, double tolerance)
{
    double most = 0.0;
    for (int j = 0; j < SIZE; j++) most = fmax(most, fabs(w[j] - before[j]));
    return most > tolerance;
}

static void begin(double *w, double *before)
{
    for (int j = 0; j < SIZE; j++) w[j] = 0.0, before[j] = 1.0;
}

double forward(double h, int outer, double tolerance, const double *a, const double *t, const double *b, const double *s)
{
    for (int o = 0; o < outer; o++) {
        double w[SIZE], before[SIZE], moving[SIZE] = {0}, weight = 2.0 * exp(h), slope = 0.0;
        begin(w, before);
        while (moves(w, before, tolerance)) {
            double g[SIZE] = {0}, gd[SIZE] = {0};
            add_product(g, a, w, t);
            add_product(gd, a, moving, NULL);
            for (int j = 0; j < SIZE; j++) {
                before[j] = w[j];
                moving[j] -= 0.1 * (0.1 * gd[j] + weight * (moving[j] + w[j]));
                w[j] -= 0.1 * (0.1 * g[j] + weight * w[j]);
            }
        }
        double ct[SIZE] = {0};
        add_product(ct, b, w, s);
        for (int j = 0; j < SIZE; j++) slope += 0.1 * ct[j] * moving[j];
        h -= 0.01 * slope;
    }
    return h;
}

double reverse(double h, int outer, double tolerance, const double *a, const double *t, const double *b, const double *s)
{
    size_t room = 1024;
    double *kept = malloc(room * SIZE * sizeof(double));
    for (int o = 0; o < outer; o++) {
        double w[SIZE], before[SIZE], ct[SIZE] = {0}, weight = 2.0 * exp(h), slope = 0.0;
        size_t k = 0;
        begin(w, before);
        while (moves(w, before, tolerance)) {
            double g[SIZE] = {0};
            if (k == room) kept = realloc(kept, (room *= 2) * SIZE * sizeof(double));
            memcpy(kept + SIZE * k++, w, sizeof w);
            add_product(g, a, w, t);
            for (int j = 0; j < SIZE; j++) {
                before[j] = w[j];
                w[j] -= 0.1 * (0.1 * g[j] + weight * w[j]);
            }
        }
        add_product(ct, b, w, s);
        for (int j = 0; j < SIZE; j++) ct[j] *= 0.1;
        while (k--) {
            double g[SIZE] = {0};
            add_product(g, a, ct, NULL);
            for (int j = 0; j < SIZE; j++) {
                slope -= 0.1 * weight * kept[SIZE * k + j] * ct[j];
                ct[j] -= 0.1 * (0.1 * g[j] + weight * ct[j]);
            }
        }
        h -= 0.01 * slope;
    }
    free(kept);
    return h;
}
