# backup.sh FOLDER: an archive of the folder, complete or not there at all.
set -eu
mkdir -p backup
part="backup/.$EVENBEAT_RUN_ID"
tar -cf "$part" "$1"
mv "$part" "backup/$1-$EVENBEAT_FENCE.tar"
echo "backup/$1-$EVENBEAT_FENCE.tar"
