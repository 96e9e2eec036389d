package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
	"unsafe"

	"github.com/voxelpopuli/voxeld/test/testkit/process"
)

// Disk is a node's own filesystem: ext4 in a file, over a loop device. It can lose power, hang, be slow, and be filled.
type Disk struct {
	image, at string
}

// diskBytes is the size of a disk. Its file is sparse.
const diskBytes = 256 << 20

// DisksMissing returns why nodes cannot have their own disks here; "" if they can.
func DisksMissing() string {
	if os.Geteuid() != 0 {
		return "loop devices need root"
	}
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		return "there are no loop devices (/dev/loop-control)"
	}
	return process.MissingTools("mkfs.ext4", "mount")
}

// NewDisk creates an empty disk in an image file, and mounts it at a directory.
func NewDisk(image, at string) (*Disk, error) {
	file, err := os.Create(image)
	if err != nil {
		return nil, fmt.Errorf("make disk image: %w", err)
	}
	if err := errors.Join(file.Truncate(diskBytes), file.Close()); err != nil {
		return nil, fmt.Errorf("make disk image: %w", err)
	}
	// No blocks reserved for root: nodes run as root here, and a full disk must be full for them.
	if err := process.Run("mkfs.ext4", "-q", "-F", "-m", "0", "-E", "lazy_itable_init=1", image); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(at, 0o755); err != nil {
		return nil, fmt.Errorf("make mount point: %w", err)
	}
	d := &Disk{image: image, at: at}
	return d, d.mount()
}

func (d *Disk) mount() error { return process.Run("mount", "-o", "loop,noatime", d.image, d.at) }

// unmount also frees the loop device. A process that has just been killed may keep the mount busy for a moment.
func (d *Disk) unmount() error {
	var err error
	for range 100 {
		if err = syscall.Unmount(d.at, 0); !errors.Is(err, syscall.EBUSY) {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if err != nil {
		return fmt.Errorf("unmount %s: %w", d.at, err)
	}
	return nil
}

// Requests of a filesystem, to any of its directories.
const (
	shutdownCommand = 0x8004587d // EXT4_IOC_SHUTDOWN, FS_IOC_GOINGDOWN elsewhere: _IOR('X', 125, __u32)
	shutdownNoLog   = 2          // EXT4_GOING_FLAGS_NOLOGFLUSH: not even the journal is written
	freezeCommand   = 0xc0045877 // FIFREEZE: _IOWR('X', 119, int)
	thawCommand     = 0xc0045878 // FITHAW: _IOWR('X', 120, int)
)

// control makes a request of the filesystem that is mounted at a directory.
func control(at string, command uintptr, argument uint32) error {
	dir, err := os.Open(at)
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // nothing was written
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, dir.Fd(), command, uintptr(unsafe.Pointer(&argument))); errno != 0 {
		return fmt.Errorf("%s: %w", at, errno)
	}
	return nil
}

// Cut cuts the power: data that the filesystem has not written to the image yet is lost.
func (d *Disk) Cut() error {
	if err := control(d.at, shutdownCommand, shutdownNoLog); err != nil {
		return fmt.Errorf("cut power: %w", err)
	}
	return nil
}

// Hang makes the disk hang: whoever writes to it, or syncs, waits until Resume. What is in memory can be read. A
// process that waits for the disk cannot be killed before.
func (d *Disk) Hang() error {
	if err := control(d.at, freezeCommand, 0); err != nil {
		return fmt.Errorf("hang disk: %w", err)
	}
	return nil
}

// Resume lets a disk that hangs go on.
func (d *Disk) Resume() error {
	if err := control(d.at, thawCommand, 0); err != nil {
		return fmt.Errorf("resume disk: %w", err)
	}
	return nil
}

// slowGap is how long a slow disk goes on between two stalls. Until the next one begins it has time for a few dozen
// syncs.
const slowGap = time.Millisecond

// Slow makes the disk slow until ctx ends: it stalls for a time, goes on for a moment, and stalls again. So a sync
// takes up to as long as a stall, and half of that on average.
func (d *Disk) Slow(ctx context.Context, stall time.Duration) error {
	for ctx.Err() == nil {
		if err := d.Hang(); err != nil {
			return err
		}
		process.Pause(ctx, stall) //nolint:errcheck // the loop ends with ctx
		if err := d.Resume(); err != nil {
			return err
		}
		process.Pause(ctx, slowGap) //nolint:errcheck // the loop ends with ctx
	}
	return nil
}

// Remount mounts the disk after the power is back, which replays the journal.
func (d *Disk) Remount() error {
	if err := d.unmount(); err != nil {
		return err
	}
	return d.mount()
}

func (d *Disk) filler() string { return filepath.Join(d.at, "filler") }

// Fill uses up all free space.
func (d *Disk) Fill() error {
	file, err := os.OpenFile(d.filler(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("fill disk: %w", err)
	}
	// Large pieces first, then the rest of a block.
	for _, size := range []int{1 << 20, 4096} {
		piece := make([]byte, size)
		for {
			if _, err = file.Write(piece); err != nil {
				break
			}
		}
	}
	if err := file.Close(); err != nil && !errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("fill disk: %w", err)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("fill disk: %w", err)
	}
	return nil
}

// MakeRoom removes the filler.
func (d *Disk) MakeRoom() error {
	if err := os.Remove(d.filler()); err != nil {
		return fmt.Errorf("remove filler: %w", err)
	}
	return nil
}
