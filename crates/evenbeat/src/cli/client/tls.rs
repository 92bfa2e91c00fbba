//! Encrypted connections to a server: trusted are the authorities of the machine, and those of a file.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::cli::format::with_causes;

/// Why there is no encrypted connection.
pub(super) enum TlsFailure {
    /// The command line is wrong.
    Usage(String),
    /// The server is not who it should be, or does not speak TLS.
    Server(String),
}

/// Encrypts a connection to this host.
pub(super) async fn encrypted(
    stream: TcpStream,
    host: &str,
    ca: Option<&Path>,
) -> Result<TlsStream<TcpStream>, TlsFailure> {
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| TlsFailure::Server(error.to_string()))?
        .with_root_certificates(roots(ca)?)
        .with_no_client_auth();
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let name = ServerName::try_from(host).map_err(|error| TlsFailure::Usage(format!("--server: {error}")))?;
    let connected = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
    connected.map_err(|error| TlsFailure::Server(with_causes(&error)))
}

fn roots(ca: Option<&Path>) -> Result<RootCertStore, TlsFailure> {
    let mut roots = RootCertStore::empty();
    // Some of a machine's certificates may be odd. What matters is whether one of the others fits.
    let (_, _) = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let Some(file) = ca else { return Ok(roots) };
    let wrong = |why: String| TlsFailure::Usage(format!("--ca: {}: {why}", file.display()));
    let certificates = CertificateDer::pem_file_iter(file).map_err(|error| wrong(error.to_string()))?;
    let mut n_added = 0;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
        roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
        n_added += 1;
    }
    if n_added == 0 { Err(wrong("it holds no certificate".to_owned())) } else { Ok(roots) }
}
