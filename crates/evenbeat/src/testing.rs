//! The parts of the program that integration tests and benchmarks reach. All other modules are private, so that the
//! compiler sees dead code.

pub mod api {
    pub use crate::api::{
        ApiOptions, ConnectionLimits, Listeners, LogBook, LogPart, NoLogs, Peer, RouterParts, ServerTls,
        Socket, openapi, router, serve_within,
    };
}
pub mod auth {
    pub use crate::auth::{Auth, AuthRules, NewToken};
}
pub mod dashboard {
    pub use crate::dashboard::{Pages, pages};
}
pub mod app {
    pub use crate::app::{App, AppParts, AppTasks, StopResult};
    pub mod housekeeping {
        pub use crate::app::housekeeping::HousekeepingRules;
    }
}
pub mod cli {
    pub use crate::cli::{Exit, check, exit_codes, reasons};
    pub mod analyze {
        pub use crate::cli::analyze::{AnalyzeOptions, FleetFileKind, analyze};
    }
}
pub mod clock {
    pub use crate::clock::Clock;
}
pub mod config {
    pub use crate::config::{
        AgendaSettings, AlertSettings, Config, ConfigError, Flag, Machine, MetricsJobs, MetricsSettings,
        Origins, Sources, TlsSettings, diagnostics, reference,
    };
}
pub mod crontab {
    pub use crate::crontab::read;
}
pub mod exec {
    pub use crate::exec::Router;
}
pub mod intake {
    pub use crate::intake::{Actor, ApplyOptions, Expect, IntakeError, JobChange, JobPolicy, PreviewLimits};
}
pub mod jobfile {
    pub use crate::jobfile::{
        Diagnostics, FILE_BYTES_MAX, LoadedFiles, SourceText, file_schema, filled_reference, load,
    };
}
pub mod node {
    pub use crate::node::NodeIdentity;
    pub mod events {
        pub use crate::node::events::FleetEvent;
    }
}
pub mod socket_path {
    pub use crate::socket_path::SocketPath;
}
pub mod statefile {
    pub use crate::statefile::states;
}
pub mod store {
    pub mod access {
        pub use crate::store::access::{
            LoginLinkRow, PageSessionRow, RevokeAnswer, SecretHash, TokenRow, TokenState,
        };
    }
    pub mod alert_rows {
        pub use crate::store::alert_rows::{
            ALERT_LEASE, AttemptResult, DeliveryRow, DeliveryState, IncidentWrite, NewDelivery,
        };
    }
    pub mod any {
        pub use crate::store::any::AnyStore;
    }
    pub mod audit_chain {
        pub use crate::store::audit_chain::ChainLink;
    }
    pub mod keyword {
        pub use crate::store::keyword::Keyword;
    }
    pub mod postgres {
        pub use crate::store::postgres::{BlockingStore, PgConfig, PgStore};
    }
    pub mod query {
        pub use crate::store::query::{
            ActorKind, AuditChainPage, AuditFilter, Count, EndedCount, EndedWindow, JobFilter, JobPage,
            RunPage, RunQuery, ScorePoint,
        };
    }
    pub mod run_times {
        pub use crate::store::run_times::{MemberBy, RunOrder, RunTimes};
    }
    pub mod spans {
        pub use crate::store::spans::{GroupBy, JobSpan, SpanKind};
    }
    pub mod sqlite {
        pub use crate::store::sqlite::{BackupError, Health, OpenError, Options, SqliteStore};
    }
}
pub mod target {
    pub use crate::target::{EndDetails, RunNews, news_channel};
    pub mod command {
        pub use crate::target::command::{
            Adoption, Bounds, KeptBytes, Order, Places, ResourceLimits, ShimOptions, Shims, TokenKey,
            find_cgroup, open_own_file, read_log,
        };
        pub mod boot {
            pub use crate::target::command::boot::{id, now};
        }
    }
    pub mod noop {
        pub use crate::target::noop::Noop;
    }
}
