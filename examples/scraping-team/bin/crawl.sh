# crawl.sh SITE WHAT PAGES: stands in for a crawl. Nothing goes over a network; it writes what a crawl would.
set -eu
site=$1 what=$2 pages=$3

if [ -e "down/$site" ]; then
  echo "$site does not answer" >&2
  exit 1
fi
if [ "$pages" -eq 0 ]; then
  echo "$site has no $what any more" >&2
  exit 3
fi

# Under a name of this run until it is whole: nobody ever reads half a file.
mkdir -p "data/$site"
part="data/$site/.$what.$EVENBEAT_FENCE"
page=0
while [ "$page" -lt "$pages" ]; do
  page=$((page + 1))
  echo "https://$site/$what?page=$page"
done > "$part"
mv "$part" "data/$site/$what.txt"

echo "$pages pages of $what, because of the $EVENBEAT_TRIGGER, with $EVENBEAT_PARAMS"
echo "{\"pages_processed\": $pages, \"changes_detected\": 1}" > "$EVENBEAT_RESULT_FILE"
