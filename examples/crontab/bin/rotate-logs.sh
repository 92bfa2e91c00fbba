# rotate-logs.sh FOLDER: each log begins anew; one old one of each is kept.
set -eu
for log in "$1"/*.log; do
  cp "$log" "$log.1"
  : > "$log"
  echo "$log"
done
