mod by_the_clock;
mod engine;
mod lists;
mod plain;
mod properties;
