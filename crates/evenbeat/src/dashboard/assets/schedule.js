/* How the starts of a day are spread, and the rebalance: preview, compare, confirm, result. */
