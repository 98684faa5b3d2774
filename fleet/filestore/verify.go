package filestore

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"os"
)

// This file reads bbolt's file format 2 as untrusted bytes. bbolt checks only the two meta pages. On other damaged
// pages it crashes or loops forever.

var native = binary.NativeEndian

const (
	magic         = 0xED0CDAED
	boltFormat    = 2
	pageHeader    = 16 // id, flags, count, overflow
	elementSize   = 16
	metaSize      = 64
	flagBranch    = 1
	flagLeaf      = 2
	leafIsBucket  = 1
	bucketHeader  = 16 // root page, sequence
	noFreelist    = 1<<64 - 1
	newest        = 1 // the transaction number of a file that was never written
	deepest       = 40
	smallestPage  = 1024
	largestPage   = 16 << 20
	checksumStart = metaSize - 8
)

// A meta is the content of a meta page.
type meta struct {
	pageSize int64
	root     uint64
	freelist uint64
	pages    uint64 // high water mark of the pages in use
	tx       uint64
}

// metaOf returns the meta page in force. It returns ErrForeign if the file was not written by bbolt.
func metaOf(f *os.File) (m meta, err error) {
	info, err := f.Stat()
	if err != nil {
		return m, err
	}
	found, like := false, false
	for pos := int64(0); pos <= largestPage; pos = max(smallestPage, 2*pos) {
		buf := make([]byte, pageHeader+metaSize)
		if _, err := f.ReadAt(buf, pos); err != nil {
			break
		}
		like = like || native.Uint32(buf[pageHeader:]) == magic
		next, ok := parseMeta(buf[pageHeader:])
		if !ok || pos != 0 && pos != next.pageSize {
			continue
		}
		if !found || next.tx > m.tx {
			m, found = next, true
		}
	}
	switch {
	case !found && like:
		return m, damaged("no meta page is complete")
	case !found:
		return m, ErrForeign
	case info.Size() < 2*m.pageSize || uint64(info.Size())/uint64(m.pageSize) < m.pages:
		return m, damaged("%d bytes are left of %d", info.Size(), m.pages*uint64(m.pageSize))
	}
	return m, nil
}

func parseMeta(b []byte) (m meta, ok bool) {
	sum := fnv.New64a()
	_, _ = sum.Write(b[:checksumStart])
	m = meta{int64(native.Uint32(b[8:])), native.Uint64(b[16:]), native.Uint64(b[32:]), native.Uint64(b[40:]), native.Uint64(b[48:])}
	ok = native.Uint32(b) == magic && native.Uint32(b[4:]) == boltFormat && native.Uint64(b[checksumStart:]) == sum.Sum64()
	return m, ok && m.pageSize >= smallestPage && m.pageSize <= largestPage && m.pages < 1<<40
}

// A walk visits every page in use once.
type walk struct {
	f       io.ReaderAt
	meta    meta
	visited map[uint64]bool
	value   func(key, value []byte) error // called for each entry of a leaf, in order
	last    []byte                        // the previous key
	leaf    bool                          // last is valid
}

// verify checks every page and every value of a file.
func verify(f *os.File) error {
	m, err := metaOf(f)
	if err != nil {
		return err
	}
	w := &walk{f: f, meta: m, visited: make(map[uint64]bool)}
	parts := make(map[string][]byte)
	err = w.tree(m.root, func(name, v []byte) error { parts[string(name)] = v; return nil }, leafIsBucket)
	if err != nil {
		return err
	}
	if len(parts) == 0 && m.tx > newest {
		return damaged("all parts are missing")
	}
	if m.freelist != noFreelist && m.tx > newest || len(parts) > 0 && parts[string(bucketMeta)] == nil {
		return ErrForeign // weir writes no freelist, and creates the meta part first
	}
	return w.parts(parts)
}

// parts walks all parts and compares their contents with their sums.
func (w *walk) parts(all map[string][]byte) error {
	sums, said := make(map[string]uint64), make(map[string]uint64)
	for name, v := range all {
		err := w.bucket(v, func(k, v []byte) error {
			sums[string(sumKey([]byte(name)))] += digest(k, v)
			plain, err := unseal(v)
			if name == string(bucketMeta) && len(plain) == 8 {
				said[string(k)] = binary.BigEndian.Uint64(plain)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	for _, name := range buckets[1:] {
		if k := sumKey(name); sums[string(k)] != said[string(k)] {
			return damaged("part %q is incomplete or outdated", name)
		}
	}
	return nil
}

func (w *walk) tree(root uint64, value func(key, value []byte) error, flags uint32) error {
	part := &walk{f: w.f, meta: w.meta, visited: w.visited, value: value}
	return part.page(root, nil, nil, 0, flags)
}

// bucket walks a part of the file. A small part is stored inline in its entry.
func (w *walk) bucket(v []byte, check func(k, v []byte) error) error {
	if len(v) < bucketHeader {
		return damaged("a part has %d bytes", len(v))
	}
	if root := native.Uint64(v); root != 0 {
		return w.tree(root, check, 0)
	}
	part := &walk{f: w.f, meta: w.meta, visited: w.visited, value: check}
	return part.elements(v[bucketHeader:], nil, nil, 0, 0, true)
}

// page checks a page and all pages below it. If least is not nil, the page's first key must equal it. All keys must
// be below most. bbolt finds a page's entry by the page's first key, and would not find an entry with a different
// key.
func (w *walk) page(id uint64, least, most []byte, depth int, flags uint32) error {
	if id < 2 || id >= w.meta.pages || w.visited[id] || depth > deepest {
		return damaged("page %d of %d is named where it cannot be", id, w.meta.pages)
	}
	head := make([]byte, pageHeader)
	if _, err := w.f.ReadAt(head, int64(id)*w.meta.pageSize); err != nil {
		return damaged("page %d: %v", id, err)
	}
	overflow := uint64(native.Uint32(head[12:]))
	if native.Uint64(head) != id || id+overflow >= w.meta.pages {
		return damaged("page %d is not what it should be", id)
	}
	for i := range overflow + 1 {
		if w.visited[id+i] {
			return damaged("page %d is used twice", id+i)
		}
		w.visited[id+i] = true
	}
	buf := make([]byte, int64(overflow+1)*w.meta.pageSize)
	if _, err := w.f.ReadAt(buf, int64(id)*w.meta.pageSize); err != nil {
		return damaged("page %d: %v", id, err)
	}
	return w.elements(buf, least, most, depth, flags, false)
}

func (w *walk) elements(buf []byte, least, most []byte, depth int, flags uint32, inline bool) error {
	if len(buf) < pageHeader {
		return damaged("a page of %d bytes", len(buf))
	}
	kind, count := native.Uint16(buf[8:]), int(native.Uint16(buf[10:]))
	if pageHeader+count*elementSize > len(buf) {
		return damaged("%d elements in %d bytes", count, len(buf))
	}
	switch {
	case kind == flagLeaf:
		return w.leaves(buf, count, least, most, flags)
	case kind == flagBranch && !inline && count > 0:
		return w.branch(buf, count, least, most, depth, flags)
	}
	return damaged("a page of kind %#x with %d elements", kind, count)
}

func (w *walk) leaves(buf []byte, count int, least, most []byte, flags uint32) error {
	if count == 0 && least != nil {
		return damaged("an empty page")
	}
	for i := range count {
		at := pageHeader + i*elementSize
		e := buf[at:]
		keyAt, keyLen, valueLen := at+int(native.Uint32(e[4:])), int(native.Uint32(e[8:])), int(native.Uint32(e[12:]))
		if native.Uint32(e) != flags {
			return damaged("an entry of kind %#x", native.Uint32(e))
		}
		key, err := slice(buf, keyAt, keyLen)
		if err != nil {
			return err
		}
		value, err := slice(buf, keyAt+keyLen, valueLen)
		if err != nil {
			return err
		}
		if i == 0 && least != nil && !bytes.Equal(key, least) {
			return damaged("entry %x is not where %x should be", key, least)
		}
		if err := w.ordered(key, most); err != nil {
			return err
		}
		if err := w.value(key, value); err != nil {
			return fmt.Errorf("entry %x: %w", key, err)
		}
	}
	return nil
}

func slice(buf []byte, at, n int) ([]byte, error) {
	if at < 0 || n < 0 || at > len(buf) || n > len(buf)-at {
		return nil, damaged("%d bytes at %d of a page of %d", n, at, len(buf))
	}
	return buf[at : at+n], nil
}

// ordered checks that keys ascend and stay below most.
func (w *walk) ordered(key, most []byte) error {
	if len(key) == 0 || w.leaf && bytes.Compare(w.last, key) >= 0 || most != nil && bytes.Compare(key, most) >= 0 {
		return damaged("entry %x is out of order", key)
	}
	w.last, w.leaf = bytes.Clone(key), true
	return nil
}

func (w *walk) branch(buf []byte, count int, least, most []byte, depth int, flags uint32) error {
	type child struct {
		key  []byte
		page uint64
	}
	var children []child
	for i := range count {
		at := pageHeader + i*elementSize
		e := buf[at:]
		key, err := slice(buf, at+int(native.Uint32(e)), int(native.Uint32(e[4:])))
		if err != nil {
			return err
		}
		first := i == 0 && least != nil && !bytes.Equal(key, least)
		if first || i > 0 && bytes.Compare(children[i-1].key, key) >= 0 {
			return damaged("page %d is out of order", native.Uint64(buf))
		}
		children = append(children, child{key, native.Uint64(e[8:])})
	}
	for i, c := range children {
		end := most
		if i+1 < count {
			end = children[i+1].key
		}
		if err := w.page(c.page, c.key, end, depth+1, flags); err != nil {
			return err
		}
	}
	return nil
}
