package servers

import (
	"os/exec"
	"strings"
)

// A Group is the nodes of one cluster.
type Group struct{ Nodes []*Server }

// Cluster starts a cluster of three nodes without replicas, and waits until each knows the location of every key.
func Cluster(t TB) *Group {
	t.Helper()
	g := &Group{}
	for range 3 {
		g.Nodes = append(g.Nodes, Redis(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "1000"))
	}
	args := append([]string{"--cluster", "create"}, g.Addrs()...)
	out, err := exec.Command("redis-cli", append(args, "--cluster-yes")...).CombinedOutput()
	if err != nil {
		t.Fatalf("redis-cli --cluster create: %v; redis-cli comes with the package redis-tools\n%s", err, out)
	}
	for _, s := range g.Nodes {
		err := s.until(func() bool {
			info, err := s.Do("CLUSTER", "INFO")
			return err == nil && strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:3")
		})
		if err != nil {
			t.Fatalf("cluster node at %s: %v\n%s", s.addr, err, s.log())
		}
	}
	return g
}

// Addrs returns the nodes' addresses.
func (g *Group) Addrs() []string {
	var all []string
	for _, s := range g.Nodes {
		all = append(all, s.Addr())
	}
	return all
}

// URL returns the URL for a client's configuration, with one of the nodes.
func (g *Group) URL() string { return g.Nodes[0].URL() }

// FlushScripts removes the scripts of all nodes.
func (g *Group) FlushScripts() {
	for _, s := range g.Nodes {
		s.FlushScripts()
	}
}
