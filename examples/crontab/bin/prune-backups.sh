# prune-backups.sh N: keeps the latest N.
set -eu
mkdir -p backup
find backup -name '*.tar' | sort -r | tail -n "+$(($1 + 1))" | while read -r old; do
  rm -f "$old"
  echo "removed $old"
done
