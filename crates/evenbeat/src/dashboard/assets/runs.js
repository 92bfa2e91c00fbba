/* What ran lately, and what went wrong. */
