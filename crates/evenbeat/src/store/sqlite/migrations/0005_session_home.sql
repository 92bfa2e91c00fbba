-- Which data directory a process works in, and which zone data it goes by.
ALTER TABLE session ADD COLUMN home BLOB NOT NULL DEFAULT x'00000000000000000000000000000000';
ALTER TABLE session ADD COLUMN zone_data TEXT NOT NULL DEFAULT '';
