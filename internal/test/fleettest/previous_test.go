//go:build unix

package fleettest

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/internal/test/servers"
)

// Processes of the previous version and of this one share a limit: half of the fleet each. During the run one process of the
// previous version is killed and replaced by one of this version, as in a rolling upgrade. The limit is not exceeded.
//
// The previous version is built from testdata/previous.tar.gz, because a clone may lack history. scripts/previous archives its
// packages clock, outcome, limit and fleet. It is the last version whose stores had no register, no history of buckets and no
// parts on DynamoDB. With -used the test also requires 90% of the limit.
func TestPreviousVersionSharesLimits(t *testing.T) {
	program := previous(t)
	redis, dynamo := servers.Redis(t), dynalite(t)
	for store, at := range map[string]func(t *testing.T, o *order){
		"redis": func(t *testing.T, o *order) {
			o.Redis = redis.URL()
			known(t, redis.URL(), o.Group)
		},
		"dynamodb": func(_ *testing.T, o *order) { o.onDynamo(dynamo) },
	} {
		for i, l := range shapes {
			t.Run(store+" "+l.Name, func(t *testing.T) {
				beside(t)
				o := order{Group: "mixed " + l.Name, Limit: l, Shape: i, Callers: callers, Lasts: lasts()}
				at(t, &o)
				share := 0.0
				if *judgeUsed {
					share = 0.9
				}
				judge(t, o, mixed(t, o, program), share)
			})
		}
	}
}

// mixed runs processes of both versions and collects their grants.
func mixed(t *testing.T, o order, program string) (all []grant) {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	var dones []<-chan []grant
	var killed *exec.Cmd
	for i := range members {
		if i%2 == 0 {
			_, done := spawn(t, o)
			dones = append(dones, done)
			continue
		}
		cmd, done := collect(t, exec.Command(program, string(text)))
		dones, killed = append(dones, done), cmd
	}
	_ = clock.System.Sleep(t.Context(), o.Lasts/2)
	if err := killed.Process.Kill(); err == nil {
		o.Lasts /= 2
		_, done := spawn(t, o)
		dones = append(dones, done)
	}
	for _, done := range dones {
		all = append(all, <-done...)
	}
	return all
}

// previous builds a fleet member of the previous version.
func previous(t *testing.T) (program string) {
	t.Helper()
	dir := t.TempDir()
	if err := unpack("testdata/previous.tar.gz", dir); err != nil {
		t.Fatal(err)
	}
	root := filepath.Join("..", "..", "..")
	for from, to := range map[string]string{
		filepath.Join(root, "go.mod"): "go.mod", filepath.Join(root, "go.sum"): "go.sum",
		filepath.Join("testdata", "member", "main.go"): filepath.Join("member", "main.go"),
	} {
		b, err := os.ReadFile(from)
		if err == nil {
			err = write(filepath.Join(dir, to), b)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", "program", "./member")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the previous version: %v\n%s", err, out)
	}
	return filepath.Join(dir, "program")
}

// write writes a file and creates its directory.
func write(file string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return os.WriteFile(file, b, 0o600)
}

// unpack extracts an archive into a directory.
func unpack(archive, dir string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	for files := tar.NewReader(z); ; {
		h, err := files.Next()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case h.Typeflag != tar.TypeReg:
			continue
		}
		b, err := io.ReadAll(io.LimitReader(files, 1<<20))
		if err != nil {
			return err
		}
		if err := write(filepath.Join(dir, filepath.FromSlash(h.Name)), b); err != nil {
			return err
		}
	}
}
