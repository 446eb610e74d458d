# Process 1 of a step: the command in the clone, then what it has left behind, one line each. Caches below /tmp are meant to stay.
cd "$CLONE" || exit 90
COMMAND
status=$?
for look in 1 2 3 4 5 6 7 8 9 10; do
  left=
  for process in /proc/[0-9]*; do
    [ "$process" = /proc/1 ] && continue
    words=()
    mapfile -d '' words 2>/dev/null <"$process/cmdline"
    [ ${#words[@]} = 0 ] || left+="LEFT process ${words[*]:0:6}"$'\n'
  done
  [ -z "$left" ] && break
  sleep 0.2
done 2>/dev/null
printf '%s' "$left"
shopt -s nullglob dotglob
for entry in /tmp/* /var/tmp/* /dev/shm/*; do
  case ${entry##*/} in palisade-cache-* | node-compile-cache) ;; *) echo "LEFT entry $entry" ;; esac
done
exit $status
