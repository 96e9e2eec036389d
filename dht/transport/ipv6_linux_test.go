package transport

import (
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/voxelpopuli/voxeld/dht/internal/nettest"
)

// refuseIPv6 makes the kernel answer this process as one without IPv6 would: there is no such address family.
func refuseIPv6() error {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},                       // the number of the system call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_SOCKET, Jf: 3}, // another one: allow
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 16},                      // its first argument
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.AF_INET6, Jf: 1},   // another family: allow
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return errno
	}
	return nil
}

// A machine whose kernel has no IPv6 needs no configuration: the node listens on IPv4. If IPv6 is all that it was told,
// it says so.
func TestWithoutIPv6(t *testing.T) {
	if os.Getenv("WITHOUT_IPV6") == "" { // in a process of its own: the filter stays
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		c := exec.CommandContext(t.Context(), self, "-test.run=^TestWithoutIPv6$", "-test.v")
		c.Env = append(os.Environ(), "WITHOUT_IPV6=1")
		out, err := c.CombinedOutput()
		if strings.Contains(string(out), "--- SKIP") {
			t.Skipf("%s", out)
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	if err := refuseIPv6(); err != nil {
		t.Skipf("no seccomp here: %v", err)
	}
	if _, err := net.Listen("tcp6", "[::]:0"); err == nil {
		t.Fatal("there is IPv6 all the same")
	}
	h, err := NewHost(Options{Storage: nettest.NewMemory(), Listen: []string{"/ip4/127.0.0.1/tcp/0", "/ip6/::/tcp/0", "/ip6/::/udp/0/quic-v1"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if h, err := NewHost(Options{Storage: nettest.NewMemory(), Listen: []string{"/ip6/::/tcp/0"}}); err == nil {
		t.Errorf("a node listens at %v", h.Addrs())
	}
}
