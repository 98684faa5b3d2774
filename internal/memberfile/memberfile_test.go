//go:build linux || darwin

package memberfile_test

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/seed1158cd35/weir/internal/memberfile"
)

// TestMain runs the test binary as another process of the machine: it locks its file until it is killed.
func TestMain(m *testing.M) {
	if path := os.Getenv("MEMBER_DIR"); path != "" {
		d, err := memberfile.Open(path)
		if err == nil {
			_, err = d.Create(memberfile.Member{ID: "other", Groups: []string{"api"}})
		}
		if err != nil {
			os.Stdout.WriteString(err.Error() + "\n")
			return
		}
		os.Stdout.WriteString("locked\n")
		bufio.NewReader(os.Stdin).ReadString('\n') // it waits
		return
	}
	os.Exit(m.Run())
}

func open(t *testing.T, path string) *memberfile.Dir {
	t.Helper()
	d, err := memberfile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func create(t *testing.T, d *memberfile.Dir, id string) *memberfile.File {
	t.Helper()
	f, err := d.Create(memberfile.Member{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// dead returns the IDs of ended members, and releases their locks.
func dead(t *testing.T, d *memberfile.Dir) (ids []string) {
	t.Helper()
	files, _, err := d.Dead(100)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		ids = append(ids, f.ID)
		f.Close()
	}
	return ids
}

func TestLockOfKilledProcessIsFree(t *testing.T) {
	path := t.TempDir()
	d := open(t, path)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "MEMBER_DIR="+path)
	in, err := cmd.StdinPipe() // held open: the process waits
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "locked\n" {
		t.Fatalf("the other process: %q", line)
	}
	if got := dead(t, d); len(got) > 0 {
		t.Errorf("%q are dead while the other process runs", got)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	files, all, err := d.Dead(100)
	if err != nil || all != 1 || len(files) != 1 || files[0].ID != "other" || !slices.Equal(files[0].Groups, []string{"api"}) {
		t.Fatalf("after the kill: %d of %d files, %v; want that of the other process", len(files), all, err)
	}
	if got := dead(t, open(t, path)); len(got) > 0 {
		t.Errorf("%q are found dead by two", got)
	}
	files[0].Remove()
	if got := dead(t, d); len(got) > 0 {
		t.Errorf("%q are dead, want none: that is known", got)
	}
}

func TestClosedFileIsFoundAndRemovedOneIsNot(t *testing.T) {
	d := open(t, filepath.Join(t.TempDir(), "new", "members"))
	a, b, c := create(t, d, "a"), create(t, d, "b"), create(t, d, "any text / of any process")
	for _, groups := range [][]string{{"long names of groups", "x"}, {"y"}} {
		if err := a.Update(func(m *memberfile.Member) { m.Groups, m.Used = groups, groups }); err != nil {
			t.Fatal(err)
		}
	}
	a.Close()
	b.Remove()
	files, _, err := d.Dead(100)
	if err != nil || len(files) != 1 || !slices.Equal(files[0].Groups, []string{"y"}) {
		t.Fatalf("%v, %v are dead, want a with its group", files, err)
	}
	if m := files[0]; !m.HasUsed("y") || m.HasUsed("x") != (m.Boot == "") {
		t.Errorf("it has used its parts of %q in boot %q", m.Used, m.Boot)
	}
	if m := (memberfile.Member{Boot: "of another run of the machine"}); !m.HasUsed("y") {
		t.Error("a file from before the machine was restarted is believed")
	}
	c.Remove()
	if err := c.Update(func(*memberfile.Member) {}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("write after the end: %v", err)
	}
}

func TestFileThatNamesNoMemberIsRemoved(t *testing.T) {
	path := t.TempDir()
	d := open(t, path)
	for name, text := range map[string]string{"a.member": "", "b.member": "{\"id\":", "c.member": "\x00\xff"} {
		if err := os.WriteFile(filepath.Join(path, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(path, "d.member")); err != nil {
		t.Fatal(err)
	}
	if got := dead(t, d); len(got) > 0 {
		t.Errorf("%q are dead, want none", got)
	}
	left, _ := filepath.Glob(filepath.Join(path, "*"))
	if len(left) != 1 {
		t.Errorf("%q are left, want the link alone", left)
	}
}

func TestDirectoryOfOthersIsRejected(t *testing.T) {
	shared := filepath.Join(t.TempDir(), "shared")
	if err := os.Mkdir(shared, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(shared, 0o777); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{shared, filepath.Join(shared, "below"), link} {
		if _, err := memberfile.Open(path); !errors.Is(err, memberfile.ErrUnsupported) {
			t.Errorf("%s: %v, want ErrUnsupported", path, err)
		}
	}
}
