# What there is to tell in the morning.
set -eu
mkdir -p backup
echo "$(find backup -name '*.tar' | wc -l) backups, $(find log -name '*.log' | wc -l) logs"
