// Package netns drives network namespaces: one for a whole program, without other traffic, or one for each node, on a
// bridge, whose packets can be dropped. Linux only, as root.
//
// It has no state but the system's.
package netns

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/voxelpopuli/voxeld/test/testkit/process"
)

// Bridge is a bridge with a link to every node, each in its own network namespace. This program is at the bridge too,
// so it reaches all nodes, however they are cut off from each other.
type Bridge struct {
	prefix string // of the names of namespaces and devices
	subnet string // the first three numbers of all addresses
}

// Missing returns why nodes cannot have their own namespaces here; "" if they can.
func Missing() string {
	if os.Geteuid() != 0 {
		return "network namespaces need root"
	}
	if why := process.MissingTools("ip", "iptables", "nsenter"); why != "" {
		return why
	}
	probe := "vxprobe" + strconv.Itoa(os.Getpid()) // unique: other runs may probe at the same time
	if err := process.Run("ip", "netns", "add", probe); err != nil {
		return err.Error()
	}
	err := process.Run("nsenter", "--net=/run/netns/"+probe, "iptables", "-w", "-A", "INPUT", "-s", "10.0.0.1", "-j", "DROP")
	if err = errors.Join(err, process.Run("ip", "netns", "del", probe)); err != nil {
		return err.Error()
	}
	return ""
}

// NewBridge makes a bridge with namespaces for nodes 1 to n. Sweep with the same prefix removes them.
func NewBridge(prefix, subnet string, n int) (*Bridge, error) {
	b := &Bridge{prefix: prefix, subnet: subnet}
	bridge := prefix + "br"
	steps := [][]string{
		{"link", "add", bridge, "type", "bridge"},
		{"addr", "add", b.Address(254) + "/24", "dev", bridge},
		{"link", "set", bridge, "up"},
	}
	for i := 1; i <= n; i++ {
		name, inside, outside := b.namespace(i), "eth0", fmt.Sprintf("%sv%d", prefix, i)
		steps = append(
			steps,
			[]string{"netns", "add", name},
			[]string{"link", "add", outside, "type", "veth", "peer", "name", inside, "netns", name},
			[]string{"link", "set", outside, "master", bridge, "up"},
			[]string{"-n", name, "addr", "add", b.Address(i) + "/24", "dev", inside},
			[]string{"-n", name, "link", "set", inside, "up"},
			[]string{"-n", name, "link", "set", "lo", "up"},
		)
	}
	for _, s := range steps {
		if err := process.Run("ip", s...); err != nil {
			return nil, fmt.Errorf("make network: %w", err)
		}
	}
	return b, nil
}

func (b *Bridge) namespace(i int) string { return fmt.Sprintf("%sn%d", b.prefix, i) }

// Address returns the address of the i-th node; 254 is this program.
func (b *Bridge) Address(i int) string { return fmt.Sprintf("%s.%d", b.subnet, i) }

// Enter returns the command that runs another in the i-th node's namespace.
func (b *Bridge) Enter(i int) []string {
	return []string{"nsenter", "--net=/run/netns/" + b.namespace(i), "--"}
}

// DropInbound drops all packets from the others to the i-th node. Its own packets still arrive.
func (b *Bridge) DropInbound(i int, others []int) error {
	var rules strings.Builder
	rules.WriteString("*filter\n")
	for _, o := range others {
		fmt.Fprintf(&rules, "-A INPUT -s %s -j DROP\n", b.Address(o))
	}
	rules.WriteString("COMMIT\n")
	return b.restore(i, rules.String(), "--noflush")
}

// Heal removes the i-th node's filters.
func (b *Bridge) Heal(i int) error { return b.restore(i, "*filter\n:INPUT ACCEPT [0:0]\nCOMMIT\n") }

func (b *Bridge) restore(i int, rules string, flags ...string) error {
	words := append(append(b.Enter(i), "iptables-restore", "-w"), flags...)
	return process.RunWith(rules, words[0], words[1:]...)
}

// Sweep removes the bridge with that prefix and its namespaces, and with them the ends of their links.
func Sweep(prefix string) error {
	names, err := os.ReadDir("/run/netns")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look for namespaces: %w", err)
	}
	var errs []error
	for _, name := range names {
		if strings.HasPrefix(name.Name(), prefix+"n") {
			errs = append(errs, process.Run("ip", "netns", "del", name.Name()))
		}
	}
	if _, err := os.Stat("/sys/class/net/" + prefix + "br"); err == nil {
		errs = append(errs, process.Run("ip", "link", "del", prefix+"br"))
	}
	return errors.Join(errs...)
}
