package sqlite_test

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// A disk observes what SQLite does with the files of one directory.
type disk interface {
	// may is called before a file is written or grows to a size. It returns an SQLite result code.
	may(name string, size int64) int32

	did(op diskOp)
}

// A diskOp is one change of a file.
type diskOp struct {
	kind opKind
	name string // within its directory
	at   int64  // the offset of a write, or the new size of a truncation
	data []byte
}

type opKind uint8

const (
	opWrite opKind = iota
	opTruncate
	opSync
	opDelete
)

// shim is a VFS that wraps the VFS of the system. It passes on calls for files that belong to no disk.
var shim struct {
	once sync.Once
	base uintptr // the VFS of the system

	mu       sync.Mutex
	disks    map[string]disk     // by directory
	files    map[uintptr]file    // the open files
	patched  map[uintptr]uintptr // replacement methods by the system's
	original map[uintptr]uintptr // the reverse
}

type file struct {
	disk disk
	name string
}

// onDisk makes SQLite report its actions in a directory to a disk until the test ends.
func onDisk(t *testing.T, dir string, d disk) {
	t.Helper()
	shim.once.Do(register)
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	shim.mu.Lock()
	defer shim.mu.Unlock()
	shim.disks[dir] = d
	t.Cleanup(func() {
		shim.mu.Lock()
		defer shim.mu.Unlock()
		delete(shim.disks, dir)
	})
}

// at returns the value at an address outside Go's memory.
func at[T any](address uintptr) *T { return (*T)(*(*unsafe.Pointer)(unsafe.Pointer(&address))) }

// code returns the address of a function in the form that SQLite calls. calls is the inverse.
func code[F any](f F) uintptr { return *(*uintptr)(unsafe.Pointer(&struct{ f F }{f})) }

func calls[F any](address uintptr) F { return *(*F)(unsafe.Pointer(&struct{ p uintptr }{address})) }

type (
	openFunc   = func(tls *libc.TLS, vfs, name, file uintptr, flags int32, out uintptr) int32
	deleteFunc = func(tls *libc.TLS, vfs, name uintptr, sync int32) int32
	closeFunc  = func(tls *libc.TLS, file uintptr) int32
	writeFunc  = func(tls *libc.TLS, file, from uintptr, n int32, at int64) int32
	sizeFunc   = func(tls *libc.TLS, file uintptr, size int64) int32
	syncFunc   = func(tls *libc.TLS, file uintptr, flags int32) int32
	shmFunc    = func(tls *libc.TLS, file uintptr, region, size, extend int32, out uintptr) int32
)

func register() {
	shim.disks, shim.files = make(map[string]disk), make(map[uintptr]file)
	shim.patched, shim.original = make(map[uintptr]uintptr), make(map[uintptr]uintptr)
	tls := libc.NewTLS()
	shim.base = lib.Xsqlite3_vfs_find(tls, 0)
	name, _ := libc.CString("weir-test")
	v := libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(lib.Tsqlite3_vfs{})))
	*at[lib.Tsqlite3_vfs](v) = *at[lib.Tsqlite3_vfs](shim.base)
	at[lib.Tsqlite3_vfs](v).FzName = name
	at[lib.Tsqlite3_vfs](v).FxOpen = code[openFunc](shimOpen)
	at[lib.Tsqlite3_vfs](v).FxDelete = code[deleteFunc](shimDelete)
	lib.Xsqlite3_vfs_register(tls, v, 1)
}

// diskOf returns the disk of a path and the file's name on it, or nil.
func diskOf(path string) (disk, string) {
	shim.mu.Lock()
	defer shim.mu.Unlock()
	return shim.disks[filepath.Dir(path)], filepath.Base(path)
}

func shimOpen(tls *libc.TLS, vfs, name, f uintptr, flags int32, out uintptr) int32 {
	rc := calls[openFunc](at[lib.Tsqlite3_vfs](shim.base).FxOpen)(tls, shim.base, name, f, flags, out)
	if rc != lib.SQLITE_OK || name == 0 {
		return rc
	}
	d, base := diskOf(libc.GoString(name))
	if d == nil {
		return rc
	}
	shim.mu.Lock()
	defer shim.mu.Unlock()
	shim.files[f] = file{d, base}
	is := at[lib.Tsqlite3_file](f)
	m := shim.patched[is.FpMethods]
	if m == 0 {
		m = libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(lib.Tsqlite3_io_methods{})))
		methods := at[lib.Tsqlite3_io_methods](m)
		*methods = *at[lib.Tsqlite3_io_methods](is.FpMethods)
		methods.FxClose, methods.FxWrite, methods.FxTruncate = code[closeFunc](shimClose), code[writeFunc](shimWrite), code[sizeFunc](shimTruncate)
		methods.FxSync, methods.FxShmMap = code[syncFunc](shimSync), code[shmFunc](shimShmMap)
		shim.patched[is.FpMethods], shim.original[m] = m, is.FpMethods
	}
	is.FpMethods = m
	return rc
}

func shimDelete(tls *libc.TLS, vfs, name uintptr, sync int32) int32 {
	rc := calls[deleteFunc](at[lib.Tsqlite3_vfs](shim.base).FxDelete)(tls, shim.base, name, sync)
	if d, base := diskOf(libc.GoString(name)); d != nil && rc == lib.SQLITE_OK {
		d.did(diskOp{kind: opDelete, name: base})
	}
	return rc
}

// opened returns an open file and the system's methods for it.
func opened(f uintptr) (file, *lib.Tsqlite3_io_methods) {
	shim.mu.Lock()
	defer shim.mu.Unlock()
	return shim.files[f], at[lib.Tsqlite3_io_methods](shim.original[at[lib.Tsqlite3_file](f).FpMethods])
}

func shimClose(tls *libc.TLS, f uintptr) int32 {
	_, m := opened(f)
	shim.mu.Lock()
	delete(shim.files, f)
	shim.mu.Unlock()
	return calls[closeFunc](m.FxClose)(tls, f)
}

func shimWrite(tls *libc.TLS, f, from uintptr, n int32, offset int64) int32 {
	is, m := opened(f)
	if rc := is.disk.may(is.name, offset+int64(n)); rc != lib.SQLITE_OK {
		return rc
	}
	data := strings.Clone(unsafe.String(at[byte](from), int(n)))
	rc := calls[writeFunc](m.FxWrite)(tls, f, from, n, offset)
	if rc == lib.SQLITE_OK {
		is.disk.did(diskOp{kind: opWrite, name: is.name, at: offset, data: []byte(data)})
	}
	return rc
}

func shimTruncate(tls *libc.TLS, f uintptr, size int64) int32 {
	is, m := opened(f)
	rc := calls[sizeFunc](m.FxTruncate)(tls, f, size)
	if rc == lib.SQLITE_OK {
		is.disk.did(diskOp{kind: opTruncate, name: is.name, at: size})
	}
	return rc
}

// shimSync only records that the file was synced, because the tests need no real sync.
func shimSync(_ *libc.TLS, f uintptr, _ int32) int32 {
	is, _ := opened(f)
	is.disk.did(diskOp{kind: opSync, name: is.name})
	return lib.SQLITE_OK
}

func shimShmMap(tls *libc.TLS, f uintptr, region, size, extend int32, out uintptr) int32 {
	is, m := opened(f)
	if extend != 0 && is.disk.may(is.name+"-shm", int64(region+1)*int64(size)) != lib.SQLITE_OK {
		return lib.SQLITE_IOERR_SHMSIZE
	}
	return calls[shmFunc](m.FxShmMap)(tls, f, region, size, extend, out)
}
