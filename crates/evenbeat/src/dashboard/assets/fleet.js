/* The first page: how the fleet is, what is late and why, and the list of jobs. */
