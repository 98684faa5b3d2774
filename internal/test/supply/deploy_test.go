//go:build linux

package supply

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/sidecar/config"
)

func text(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The unit has only the permissions that weir needs, as judged by systemd, and Debian 12's systemd knows all its settings.
func TestTheUnitIsHardened(t *testing.T) {
	file, err := filepath.Abs(filepath.Join(root, "deploy/systemd/weir.service"))
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("systemd-analyze", "security", "--offline=true", file).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	m := regexp.MustCompile(`exposure level for weir.service: (\d+\.\d+)`).FindSubmatch(out)
	if m == nil {
		t.Fatalf("it does not judge: %s", out)
	}
	if level, err := strconv.ParseFloat(string(m[1]), 64); err != nil || level > 2.0 {
		t.Errorf("its exposure level is %s, want 2.0 at most\n%s", m[1], out)
	}
	// The program and its manual are not installed here. Every other message is an error.
	out, _ = exec.Command("systemd-analyze", "verify", file).CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "weir.service") && !strings.Contains(line, "/usr/bin/weir is not executable") && !strings.Contains(line, "'man weir(1)' failed") {
			t.Error(line)
		}
	}
}

// Service managers wait for a stopped weir longer than its shutdown takes.
func TestWhoStopsWeirIsPatient(t *testing.T) {
	seconds := func(path, expr string) time.Duration {
		m := regexp.MustCompile(expr).FindStringSubmatch(text(t, path))
		if m == nil {
			t.Fatalf("%s has no %s", path, expr)
		}
		n, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		return time.Duration(n) * time.Second
	}
	for _, c := range []struct {
		yaml string
		stop time.Duration
	}{
		{"deploy/debian/weir.yaml", seconds("deploy/systemd/weir.service", `TimeoutStopSec=(\d+)s`)},
		{"deploy/kubernetes/weir.yaml", seconds("deploy/kubernetes/deployment.yaml", `terminationGracePeriodSeconds: (\d+)`)},
	} {
		f := loaded(t, c.yaml)
		if need := f.LameDuck + f.Drain + 5*time.Second; c.stop < need {
			t.Errorf("%s: it is killed after %v, and needs %v", c.yaml, c.stop, need)
		}
	}
	if loaded(t, "deploy/kubernetes/weir.yaml").LameDuck == 0 {
		t.Error("a pod takes no more calls before its service knows")
	}
}

func loaded(t *testing.T, path string) *config.File {
	t.Helper()
	f, err := config.Load(filepath.Join(root, path), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// The image contains only the program and its configuration, does not run as root, and passes signals directly to weir.
func TestTheImage(t *testing.T) {
	has := make(map[string][]string)
	for line := range strings.Lines(text(t, "deploy/container/Containerfile")) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		has[word] = append(has[word], rest)
	}
	for word, want := range map[string]string{
		"FROM": "scratch", "USER": "65532:65532", "STOPSIGNAL": "SIGTERM", "ENTRYPOINT": `["/weir"]`, "CMD": `["serve", "-config", "/etc/weir/weir.yaml"]`,
	} {
		if got := strings.Join(has[word], "; "); got != want {
			t.Errorf("%s is %s, want %s", word, got, want)
		}
	}
	if has["RUN"] != nil || has["ADD"] != nil || len(has["COPY"]) != 2 {
		t.Errorf("it runs %q, adds %q and copies %q", has["RUN"], has["ADD"], has["COPY"])
	}
	f := loaded(t, "deploy/container/weir.yaml")
	if strings.HasPrefix(f.Listen, "127.") || strings.HasPrefix(f.Admin, "127.") {
		t.Errorf("nobody reaches %s and %s in a container", f.Listen, f.Admin)
	}
	// Without certificates and time zones in the image, the program must contain them.
	c := exec.Command("go", "list", "-deps", "-tags", "image", "./cmd/weir")
	c.Dir = root
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"\ntime/tzdata\n", "\ngolang.org/x/crypto/x509roots/fallback\n"} {
		if !strings.Contains(string(out), name) {
			t.Errorf("the program of the image has no %s", strings.TrimSpace(name))
		}
	}
}
