-- Which data directory a process works in, and which zone data it goes by.
ALTER TABLE session ADD COLUMN home uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000';
ALTER TABLE session ADD COLUMN zone_data text NOT NULL DEFAULT '';
