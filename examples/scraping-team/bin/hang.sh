# Waits for an answer that never comes.
echo "asking the partner"
sleep 600
