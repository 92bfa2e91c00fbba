//! TLS for connections over TCP. The files are read again when they change; open connections go on as they are.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration as Length;

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::config::TlsSettings;

/// How often the files are looked at.
pub const LOOK_EVERY: Length = Length::from_secs(10);

/// Largest file we read.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Mode bits that let users other than the owner read a file.
const READABLE_BY_OTHERS: u32 = 0o077;

/// The certificate and the key of the server. Copies share them.
#[derive(Clone, Debug)]
pub struct ServerTls {
    inner: Arc<TlsState>,
}

#[derive(Debug)]
struct TlsState {
    files: TlsSettings,
    current: ArcSwap<ServerConfig>,
    /// What the files looked like when they were last read, good or bad.
    seen: Mutex<FileStamps>,
}

/// When and which: a file that was written again has another.
type FileStamp = Option<(i64, i64, u64, u64)>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileStamps {
    cert: FileStamp,
    key: FileStamp,
}

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsFileError {
    /// A file cannot be read.
    #[error("`{}` (`{key}`) cannot be read; check the path and its permissions", path.display())]
    Unreadable {
        /// Which key of the configuration names it.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// Others can read the private key.
    #[error(
        "`{}` (`tls.key`) can be read by other users (mode {mode:04o}); run `chmod 600 {}`",
        path.display(),
        path.display()
    )]
    OpenPrivateKey {
        /// The file.
        path: PathBuf,
        /// Who may do what.
        mode: u32,
    },
    /// A file holds something else.
    #[error("`{}` (`{key}`) is not {what} in PEM format: {why}", path.display())]
    NotPem {
        /// Which key of the configuration names it.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// What it should be.
        what: &'static str,
        /// What is wrong.
        why: String,
    },
    /// The two do not belong together, or are of a kind that is not supported.
    #[error("`tls.cert` and `tls.key` cannot be used together: {0}")]
    Mismatch(#[from] rustls::Error),
}

impl ServerTls {
    /// Reads the files.
    pub fn load(files: &TlsSettings) -> Result<ServerTls, TlsFileError> {
        let seen = FileStamps::of(files);
        let current = ArcSwap::new(Arc::new(read(files)?));
        Ok(ServerTls { inner: Arc::new(TlsState { files: files.clone(), current, seen: Mutex::new(seen) }) })
    }

    /// What makes a connection encrypted, with the files as they are now.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.inner.current.load_full())
    }

    /// Reads the files again if they have changed. If they cannot be used, the ones before stay in use.
    pub fn reload(&self) {
        let files = &self.inner.files;
        let stamps = FileStamps::of(files);
        {
            let mut seen = self.inner.seen.lock().unwrap_or_else(PoisonError::into_inner);
            if *seen == stamps {
                return;
            }
            *seen = stamps;
        }
        match read(files) {
            Ok(config) => {
                self.inner.current.store(Arc::new(config));
                tracing::info!(cert = %files.cert.display(), "certificate reloaded");
            }
            Err(error) => {
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                tracing::warn!(%error, cause, "new certificate cannot be used; keeping the previous one");
            }
        }
    }

    /// Looks at the files now and then, for ever.
    pub async fn follow(self) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let own = self.clone();
            // The files may lie on a slow disk.
            let _ = tokio::task::spawn_blocking(move || own.reload()).await;
        }
    }
}

impl FileStamps {
    fn of(files: &TlsSettings) -> FileStamps {
        let stamp = |path: &Path| {
            let about = fs::metadata(path).ok()?;
            Some((about.mtime(), about.mtime_nsec(), about.ino(), about.size()))
        };
        FileStamps { cert: stamp(&files.cert), key: stamp(&files.key) }
    }
}

fn read(files: &TlsSettings) -> Result<ServerConfig, TlsFileError> {
    let (cert, _) = content("tls.cert", &files.cert)?;
    let (key, mode) = content("tls.key", &files.key)?;
    if mode & READABLE_BY_OTHERS != 0 {
        return Err(TlsFileError::OpenPrivateKey { path: files.key.clone(), mode: mode & 0o7777 });
    }
    let bad_cert = |why: String| TlsFileError::NotPem {
        key: "tls.cert",
        path: files.cert.clone(),
        what: "a certificate",
        why,
    };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&cert)
        .collect::<Result<_, _>>()
        .map_err(|it| bad_cert(it.to_string()))?;
    if chain.is_empty() {
        return Err(bad_cert("it holds no certificate".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_slice(&key).map_err(|error| TlsFileError::NotPem {
        key: "tls.key",
        path: files.key.clone(),
        what: "a private key",
        why: error.to_string(),
    })?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn content(key: &'static str, path: &Path) -> Result<(Vec<u8>, u32), TlsFileError> {
    let read = || {
        let file = File::open(path)?;
        // Of the open file: the path may lead to another by now.
        let mode = file.metadata()?.mode();
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
        Ok((bytes, mode))
    };
    read().map_err(|source| TlsFileError::Unreadable { key, path: path.to_owned(), source })
}
