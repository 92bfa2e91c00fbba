//! How long stores are held against the reference.

/// How many stories of how many requests: as many as a test of every day takes, or what `EVENBEAT_STORIES` says, such as
/// `1000x500` for the long form.
pub(crate) fn stories(n_seeds: u64, n_requests: usize) -> (u64, usize) {
    let Ok(wanted) = std::env::var("EVENBEAT_STORIES") else { return (n_seeds, n_requests) };
    let (seeds, requests) = wanted.split_once('x').expect("EVENBEAT_STORIES is like 1000x500");
    (seeds.parse().unwrap(), requests.parse().unwrap())
}
