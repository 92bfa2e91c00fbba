//! What every benchmark tells beside its figures, and where it writes them.

use std::path::PathBuf;

/// `2 CPUs, load average 0.41 0.70 0.58`.
pub(crate) fn machine() -> String {
    format!("{} CPUs, load average {}", n_cpus(), load_average())
}

/// The same as fields of a JSON object.
pub(crate) fn machine_json() -> String {
    format!("\"n_cpus\": {}, \"load_average\": \"{}\"", n_cpus(), load_average())
}

/// Writes a document into the directory that `EVENBEAT_BENCH_DIR` names, if it does.
pub(crate) fn write_json(name: &str, json: &str) {
    let Some(directory) = std::env::var_os("EVENBEAT_BENCH_DIR").map(PathBuf::from) else { return };
    let path = directory.join(format!("{name}.json"));
    match std::fs::write(&path, json) {
        Ok(()) => println!("written to {}", path.display()),
        Err(error) => println!("note: `{}` cannot be written: {error}", path.display()),
    }
}

fn n_cpus() -> usize {
    std::thread::available_parallelism().map_or(0, usize::from)
}

fn load_average() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let averages: Vec<&str> = text.split_whitespace().take(3).collect();
    if averages.is_empty() { "unknown".to_owned() } else { averages.join(" ") }
}
