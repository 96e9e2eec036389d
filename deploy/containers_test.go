package deploy

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"strings"
	"testing"
)

var containers = flag.Bool("containers", false, "run TestContainers; make containers starts the engine that it needs")

// engine drives the containers of compose/three.yml.
type engine struct {
	t     *testing.T
	image string
}

// command runs a command with the image that compose is to use.
func (e *engine) command(name string, args ...string) string {
	e.t.Helper()
	c := exec.Command(name, args...)
	c.Env = append(os.Environ(), "VOXELD_IMAGE="+e.image, "VOXELD_CPUS=0.9") // an engine refuses more than it has
	out, err := c.CombinedOutput()
	if err != nil {
		e.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func (e *engine) compose(args ...string) string {
	e.t.Helper()
	return e.command("docker-compose", append([]string{"-f", "compose/three.yml", "--project-name", "voxeld"}, args...)...)
}

func (e *engine) docker(args ...string) string {
	e.t.Helper()
	return e.command("docker", args...)
}

// build makes an image with the name from bin/voxeld.
func (e *engine) build(image string) {
	e.t.Helper()
	e.docker("build", "--target", "prebuilt", "--label", "test="+image, "--tag", image, "..")
	e.image = image
}

func container(service string) string { return "voxeld_" + service + "_1" }

// healthy waits until each node serves and reports that its regions are healthy.
func (e *engine) healthy(services ...string) {
	e.t.Helper()
	for _, s := range services {
		eventually(e.t, s+" serves", func() bool {
			return exec.Command("docker", "exec", container(s), "/voxeld", "healthcheck").Run() == nil
		})
		e.docker("exec", container(s), "/voxeld", "status", "--wait", "healthy")
	}
}

// The image is built and three containers are started. While bots play and build on them, one is cut off the network,
// one is killed, and all are replaced by another image, one after the other. Every acknowledged edit is there in the
// end.
func TestContainers(t *testing.T) {
	if !*containers {
		t.Skip("make containers runs it")
	}
	e := &engine{t: t}
	e.build("voxeld:next")
	e.build("voxeld:first")
	services := []string{"node-a", "node-b", "node-c"}
	defer func() {
		if t.Failed() {
			t.Log(e.compose("logs", "--no-color", "--tail", "40"))
		}
		for _, s := range services {
			exec.Command("docker", "kill", container(s)).Run() //nolint:errcheck // it may not have started
		}
		e.compose("down", "--volumes", "--timeout", "1")
	}()
	step := stepper(t)
	e.compose("up", "--detach", "--no-build")
	e.healthy(services...)
	eventually(e.t, "the image's health check succeeds", func() bool {
		return e.docker("inspect", "--format", "{{.State.Health.Status}}", container("node-a")) == "healthy"
	})
	e.confined(container("node-b"))
	step("three containers serve")

	players := startCrowd(t, "127.0.0.1:4002", "127.0.0.1:4012", "127.0.0.1:4022")
	players.build()
	step("players build")

	network := "voxeld_default"
	e.docker("network", "disconnect", "--force", network, container("node-c"))
	players.build()
	step("players build while node-c is cut off")
	e.docker("network", "connect", "--alias", "node-c", network, container("node-c"))
	e.healthy(services...)
	step("node-c is back")

	e.docker("kill", container("node-b"))
	players.build()
	step("players build while node-b is dead")
	e.docker("start", container("node-b"))
	e.healthy(services...)
	step("node-b is back")

	e.image = "voxeld:next"
	for _, s := range services {
		e.compose("up", "--detach", "--no-build", "--no-deps", s)
		e.healthy(services...)
		if is := e.docker("inspect", "--format", "{{.Config.Image}}", container(s)); is != e.image {
			t.Errorf("%s runs %s, not %s", s, is, e.image)
		}
		players.build()
		step("%s runs the next image", s)
	}
	players.leave()
	players.check()
	step("all of %d acknowledged edits were found on each node", players.book.Edits())
}

// confined checks the limits of a container as the engine has them.
func (e *engine) confined(name string) {
	e.t.Helper()
	var all []struct {
		HostConfig struct {
			Memory         int64
			NanoCpus       int64
			PidsLimit      int64
			ReadonlyRootfs bool
			CapDrop        []string
			SecurityOpt    []string
			RestartPolicy  struct{ Name string }
		}
		Config struct{ User string }
	}
	if err := json.Unmarshal([]byte(e.docker("inspect", name)), &all); err != nil || len(all) != 1 {
		e.t.Fatalf("inspect %s: %v", name, err)
	}
	h := all[0].HostConfig
	if h.Memory == 0 || h.NanoCpus == 0 || h.PidsLimit == 0 || !h.ReadonlyRootfs || len(h.CapDrop) == 0 || len(h.SecurityOpt) == 0 ||
		h.RestartPolicy.Name != "unless-stopped" || all[0].Config.User != "65532:65532" {
		e.t.Errorf("%s is not confined: %+v, user %s", name, h, all[0].Config.User)
	}
}
