# check-disk.sh FOLDER: how full its disk is.
set -eu
df -P "$1" | tail -n 1
