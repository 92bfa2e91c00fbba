//! The pages of a server that runs inside the test: what people read there, and what they can do.

mod job;
