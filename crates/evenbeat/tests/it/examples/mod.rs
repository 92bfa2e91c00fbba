//! The examples, as their README tells to use them: with the real program, on a real node, in a copy of their folder.

mod crontab;
mod example;
mod scraping_team;
