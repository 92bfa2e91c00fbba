//! What a process costs, as the system counts it.

use std::fs;

/// Milliseconds of processor time so far, of all its threads.
pub(crate) fn cpu_ms(pid: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("the process is there");
    let (_, rest) = stat.rsplit_once(')').expect("a name in brackets");
    // User and system time are the 14th and 15th field, and two are before the bracket. In hundredths of a second.
    let ticks = rest.split_ascii_whitespace().skip(11).take(2).map(|it| it.parse::<f64>().expect("ticks"));
    ticks.sum::<f64>() * 10.0
}

/// Its memory in MB: what is resident now, and what ever was.
pub(crate) fn resident_mb(pid: u32) -> (f64, f64) {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process is there");
    let of = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a line of memory");
        let kib: f64 = line.trim_end_matches("kB").trim().parse().expect("a number");
        kib / 1_024.0
    };
    (of("VmRSS:"), of("VmHWM:"))
}
