# check-certificates.sh FILE: lines of a name and the day on which its certificate ends. Fails if one has ended.
set -eu
today=$(date -u +%Y%m%d)
ended=0
while read -r name day; do
  case $name in '' | '#'*) continue ;; esac
  if [ "$(echo "$day" | tr -d -)" -lt "$today" ]; then
    echo "$name: the certificate ended on $day" >&2
    ended=1
  fi
done < "$1"
exit $ended
