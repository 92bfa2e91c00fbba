//! Encryption of connections to the server.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_postgres_rustls::MakeRustlsConnect;

/// How connections are encrypted.
#[derive(Clone, Debug)]
pub(super) struct Tls(Arc<ClientConfig>);

/// Why encryption cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The certificates to trust are missing.
    #[error("`sslmode=verify-full` needs `sslrootcert=` with a file of the certificates to trust")]
    NoRoots,
    /// The file of certificates cannot be used.
    #[error("`{}` cannot be used as `sslrootcert`: {why}", file.display())]
    Roots {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The protocol cannot be set up.
    #[error("TLS cannot be set up: {0}")]
    Protocol(#[from] rustls::Error),
}

impl Tls {
    /// Encrypts, but does not verify the server.
    pub(super) fn unverified() -> Result<Tls, TlsError> {
        let provider = provider();
        let verifier = Arc::new(AnyServer(Arc::clone(&provider)));
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        Ok(Tls(Arc::new(config)))
    }

    /// Verifies the name of the server with these root certificates.
    pub(super) fn verified(roots: Option<&Path>) -> Result<Tls, TlsError> {
        let file = roots.ok_or(TlsError::NoRoots)?;
        let trouble = |why: String| TlsError::Roots { file: file.to_owned(), why };
        let mut store = RootCertStore::empty();
        let certificates = CertificateDer::pem_file_iter(file).map_err(|error| trouble(error.to_string()))?;
        for certificate in certificates {
            let certificate = certificate.map_err(|error| trouble(error.to_string()))?;
            store.add(certificate).map_err(|error| trouble(error.to_string()))?;
        }
        if store.is_empty() {
            return Err(trouble("it holds no certificate".to_owned()));
        }
        let config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()?
            .with_root_certificates(store)
            .with_no_client_auth();
        Ok(Tls(Arc::new(config)))
    }

    pub(super) fn connector(&self) -> MakeRustlsConnect {
        MakeRustlsConnect::new(ClientConfig::clone(&self.0))
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Accepts any server. This is what `prefer` and `require` mean in libpq.
#[derive(Debug)]
struct AnyServer(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
