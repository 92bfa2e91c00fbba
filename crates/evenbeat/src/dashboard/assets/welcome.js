/* The empty state: paste a crontab, compare, take it over. */
