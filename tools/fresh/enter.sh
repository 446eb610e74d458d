# Runs one command on the bare machine: enter.sh <root> <user> <network: yes|no> <tmp: exec|noexec> <command…>. It has mounts and processes of its own,
# made by unshare, which go away with it.
set -e
root=$1 user=$2 network=$3 tmp=$4
shift 4
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount -t devpts devpts "$root/dev/pts"
[ "$tmp" = exec ] || mount -t tmpfs -o noexec,mode=1777 tmpfs "$root/tmp"
[ "$network" = yes ] || ip link set lo up
exec chroot --userspec="$user" "$root" "$@"
