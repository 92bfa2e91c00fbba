//! Recognises network file systems. Locks and mapped memory don't work between machines, so a database would sooner or
//! later be damaged there. It is not opened.

use std::fs;
use std::path::Path;

/// The magic number of all FUSE file systems. The mount table has the name of the driver.
const FUSE: u64 = 0x6573_5546;

/// Magic numbers of network file systems.
const SHARED: [(u64, &str); 17] = [
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xfe53_4d42, "SMB"),
    (0xff53_4d42, "CIFS"),
    (0x564c, "NCP"),
    (0x0102_1997, "9p"),
    (0x00c3_6400, "Ceph"),
    (0x5346_414f, "AFS"),
    (0x6b41_4653, "AFS"),
    (0x7375_7245, "Coda"),
    (0x0bd0_0bd0, "Lustre"),
    (0x4750_4653, "GPFS"),
    (0x0116_1970, "GFS2"),
    (0x7461_636f, "OCFS2"),
    (0x2003_0528, "OrangeFS"),
    (0x786f_4256, "VirtualBox shared folder"),
    (0xbacb_acbc, "VMware shared folder"),
];

/// FUSE drivers of network file systems, as the mount table names them.
const SHARED_FUSE: [&str; 20] = [
    "sshfs",
    "s3fs",
    "goofys",
    "rclone",
    "gcsfuse",
    "glusterfs",
    "ceph",
    "davfs",
    "mfs",
    "juicefs",
    "curlftpfs",
    "gvfsd-fuse",
    "seaweedfs",
    "weed",
    "lizardfs",
    "blobfuse",
    "blobfuse2",
    "mountpoint-s3",
    "afp",
    "smbnetfs",
];

/// The name of the network file system that a folder is on. `None` if it is local or unknown.
pub(super) fn shared_file_system(folder: &Path) -> Option<String> {
    let magic = magic(folder)?;
    let kind = if magic == FUSE { mounted_as(folder) } else { None };
    shared_name(magic, kind.as_deref())
}

fn magic(folder: &Path) -> Option<u64> {
    let found = rustix::fs::statfs(folder).ok()?.f_type;
    // Some platforms use a signed type. Only the lower 32 bits count.
    u64::try_from(i128::from(found) & 0xffff_ffff).ok()
}

fn shared_name(magic: u64, kind: Option<&str>) -> Option<String> {
    if magic == FUSE {
        let driver = kind?.strip_prefix("fuse.")?;
        let name = driver.split(['#', '.']).next().unwrap_or(driver);
        return SHARED_FUSE.contains(&name).then(|| driver.to_owned());
    }
    SHARED.iter().find(|(known, _)| *known == magic).map(|(_, name)| (*name).to_owned())
}

fn mounted_as(folder: &Path) -> Option<String> {
    kind_of_mount(&fs::read_to_string("/proc/self/mountinfo").ok()?, folder)
}

/// The file system of the innermost mount that contains a folder. A line is like `36 35 98:0 /root /mnt/a rw - ext3
/// /dev/root rw`.
fn kind_of_mount(table: &str, folder: &Path) -> Option<String> {
    let mount = |line: &str| {
        let (left, right) = line.split_once(" - ")?;
        let point = left.split(' ').nth(4)?.replace("\\040", " ");
        folder.starts_with(&point).then(|| (point.len(), right.split(' ').next().map(str::to_owned)))
    };
    // The later of two mounts on one path hides the earlier.
    table.lines().filter_map(mount).max_by_key(|(length, _)| *length)?.1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(magic: u64, kind: Option<&str>, expected: Option<&str>) {
        assert_eq!(shared_name(magic, kind).as_deref(), expected, "{magic:x} {kind:?}");
    }

    #[test]
    fn what_other_machines_share_is_known_by_its_number() {
        check(0x6969, None, Some("NFS"));
        check(0xff53_4d42, None, Some("CIFS"));
        check(0x0102_1997, None, Some("9p"));
        check(0xef53, None, None); // ext4
        check(0x0102_1994, None, None); // tmpfs
        check(0x794c_7630, None, None); // overlayfs
    }

    #[test]
    fn drivers_outside_of_the_kernel_are_known_by_their_names() {
        check(FUSE, Some("fuse.sshfs"), Some("sshfs"));
        check(FUSE, Some("fuse.rclone"), Some("rclone"));
        check(FUSE, Some("fuseblk"), None);
        check(FUSE, Some("fuse.fuse-overlayfs"), None);
        check(FUSE, None, None);
    }

    #[test]
    fn the_innermost_mount_counts() {
        let table = "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n\
                     30 22 0:30 / /mnt/far\\040away rw,nosuid shared:5 - fuse.sshfs host:/ rw\n";
        let kind = |folder: &str| kind_of_mount(table, Path::new(folder));
        assert_eq!(kind("/var/lib").as_deref(), Some("ext4"));
        assert_eq!(kind("/mnt/far away/db").as_deref(), Some("fuse.sshfs"));
    }

    #[test]
    fn the_folder_of_this_test_is_our_own() {
        assert_eq!(shared_file_system(&std::env::temp_dir()), None);
    }
}
