# report.sh NAME: counts what was crawled.
set -eu
mkdir -p reports data
lines=$(find data -name '*.txt' -exec cat {} + | wc -l)
echo "$1 report: $((lines)) pages" | tee "reports/$1.txt"
