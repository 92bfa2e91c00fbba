/* The simulator: a question, an answer, charts side by side. */
