/* Who runs when, past and future. */
