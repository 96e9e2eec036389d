package chaos

import (
	"context"
	"fmt"
)

// This file cuts nodes off from each other.

// cutOff is one way of cutting nodes off from each other.
type cutOff struct {
	kind    string
	blocked map[*Node][]*Node // the nodes from which each node receives nothing
	// The sides of a full split; empty otherwise.
	sides [][]*Node
}

// split blocks all packets between two groups of nodes.
func split(kind string, a, b []*Node) cutOff {
	c := cutOff{kind: kind, blocked: make(map[*Node][]*Node), sides: [][]*Node{a, b}}
	for _, n := range a {
		c.blocked[n] = b
	}
	for _, n := range b {
		c.blocked[n] = a
	}
	return c
}

// apply cuts nodes off.
func (c *Cluster) apply(cut cutOff) error {
	for n, whom := range cut.blocked {
		var numbers []int
		for _, o := range whom {
			numbers = append(numbers, o.Number)
		}
		if err := c.network.DropInbound(n.Number, numbers); err != nil {
			return err
		}
	}
	return nil
}

// heal removes all cuts.
func (c *Cluster) heal() error {
	for _, n := range c.Nodes {
		if err := c.network.Heal(n.Number); err != nil {
			return err
		}
	}
	return nil
}

// missingConnections returns what is missing until every node is connected with every other.
func (c *Cluster) missingConnections(ctx context.Context) string {
	for _, n := range c.Nodes {
		s, err := n.Status(ctx)
		if err != nil {
			return err.Error()
		}
		if s.Peers < len(c.Nodes)-1 {
			return fmt.Sprintf("node %d is connected with %d nodes", n.Number, s.Peers)
		}
	}
	return ""
}
