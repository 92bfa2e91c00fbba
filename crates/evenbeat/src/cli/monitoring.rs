//! `evenbeat monitoring`: files for Prometheus and Grafana.

use std::io::{self, Write};

use clap::{Args, Subcommand};

use super::Exit;

const DASHBOARD: &str = include_str!("../../../../packaging/monitoring/grafana-dashboard.json");
const RULES: &str = include_str!("../../../../packaging/monitoring/prometheus-rules.yml");
const SCRAPE_CONFIG: &str = include_str!("../../../../packaging/monitoring/scrape-config.yml");

/// Arguments of `evenbeat monitoring`.
#[derive(Debug, Args)]
pub(crate) struct MonitoringArgs {
    #[command(subcommand)]
    file: MonitoringFile,
}

#[derive(Clone, Copy, Debug, Subcommand)]
enum MonitoringFile {
    /// Print a dashboard to import into Grafana.
    Grafana,
    /// Print alert rules for Prometheus.
    Rules,
    /// Print a scrape configuration for Prometheus.
    ScrapeConfig,
}

pub(crate) fn run(args: &MonitoringArgs, out: &mut dyn Write) -> io::Result<Exit> {
    let text = match args.file {
        MonitoringFile::Grafana => DASHBOARD,
        MonitoringFile::Rules => RULES,
        MonitoringFile::ScrapeConfig => SCRAPE_CONFIG,
    };
    out.write_all(text.as_bytes())?;
    Ok(Exit::Ok)
}
