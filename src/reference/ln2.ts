/** ln 2 in two parts; the first has 21 zero bits at its end, so that its product with an exponent is exact. */
export const ln2High = 0.6931471803691238;
export const ln2Low = 1.9082149292705877e-10;
