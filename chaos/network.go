package chaos

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// network is a bridge with a link to every node, each in its own network namespace. The driver is at the bridge too,
// so it reaches all nodes, however they are cut off from each other.
type network struct {
	slot  *Slot
	nodes int
}

// NetworkMissing returns why nodes cannot have their own namespaces here; "" if they can.
func NetworkMissing() string {
	if os.Geteuid() != 0 {
		return "network namespaces need root"
	}
	if why := missingTools("ip", "iptables", "nsenter"); why != "" {
		return why
	}
	probe := "vxchaosprobe" + strconv.Itoa(os.Getpid()) // unique: other runs may probe at the same time
	if err := run("ip", "netns", "add", probe); err != nil {
		return err.Error()
	}
	err := run("nsenter", "--net=/run/netns/"+probe, "iptables", "-w", "-A", "INPUT", "-s", "10.0.0.1", "-j", "DROP")
	if err = errors.Join(err, run("ip", "netns", "del", probe)); err != nil {
		return err.Error()
	}
	return ""
}

func missingTools(tools ...string) string {
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			return "there is no " + tool + " on this machine"
		}
	}
	return ""
}

func makeNetwork(slot *Slot, nodes int) (*network, error) {
	n := &network{slot: slot, nodes: nodes}
	bridge := slot.prefix() + "br"
	steps := [][]string{
		{"ip", "link", "add", bridge, "type", "bridge"},
		{"ip", "addr", "add", n.address(254) + "/24", "dev", bridge},
		{"ip", "link", "set", bridge, "up"},
	}
	for i := 1; i <= nodes; i++ {
		name, inside, outside := slot.namespace(i), "eth0", fmt.Sprintf("%sv%d", slot.prefix(), i)
		steps = append(
			steps,
			[]string{"ip", "netns", "add", name},
			[]string{"ip", "link", "add", outside, "type", "veth", "peer", "name", inside, "netns", name},
			[]string{"ip", "link", "set", outside, "master", bridge, "up"},
			[]string{"ip", "-n", name, "addr", "add", n.address(i) + "/24", "dev", inside},
			[]string{"ip", "-n", name, "link", "set", inside, "up"},
			[]string{"ip", "-n", name, "link", "set", "lo", "up"},
		)
	}
	for _, s := range steps {
		if err := run(s[0], s[1:]...); err != nil {
			return nil, fmt.Errorf("make network: %w", err)
		}
	}
	return n, nil
}

// address returns the address of the i-th node; 254 is the driver.
func (n *network) address(i int) string { return fmt.Sprintf("10.77.%d.%d", n.slot.Number, i) }

// execPrefix returns the command that runs another in the i-th node's namespace.
func (n *network) execPrefix(i int) []string {
	return []string{"nsenter", "--net=/run/netns/" + n.slot.namespace(i), "--"}
}

// dropInbound drops all packets from the others to the i-th node. Its own packets still arrive.
func (n *network) dropInbound(i int, others []int) error {
	var rules strings.Builder
	rules.WriteString("*filter\n")
	for _, o := range others {
		fmt.Fprintf(&rules, "-A INPUT -s %s -j DROP\n", n.address(o))
	}
	rules.WriteString("COMMIT\n")
	return n.restore(i, rules.String(), "--noflush")
}

// heal removes the i-th node's filters.
func (n *network) heal(i int) error {
	return n.restore(i, "*filter\n:INPUT ACCEPT [0:0]\nCOMMIT\n")
}

func (n *network) restore(i int, rules string, flags ...string) error {
	args := append(n.execPrefix(i), append([]string{"iptables-restore", "-w"}, flags...)...)
	c := exec.Command(args[0], args[1:]...)
	c.Stdin = strings.NewReader(rules)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("change filter of node %d: %w: %s", i, err, out)
	}
	return nil
}
