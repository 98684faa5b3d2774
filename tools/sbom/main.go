// Command sbom writes a CycloneDX 1.6 bill of materials of a Go program: the modules in its build information,
// without data about this machine or the present time.
//
//	sbom -version 0.3.0 -time 1700000000 FILE > FILE.cdx.json
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	log.SetFlags(0)
	version := flag.String("version", "", "of the program")
	epoch := flag.Int64("time", 0, "of the sources, in seconds since 1970")
	flag.Parse()
	if flag.NArg() != 1 {
		log.Fatal("usage: sbom [flags] FILE")
	}
	if err := write(os.Stdout, flag.Arg(0), *version, time.Unix(*epoch, 0).UTC()); err != nil {
		log.Fatal(err)
	}
}

func write(to io.Writer, file, version string, at time.Time) error {
	program, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(program)
	self := cdx.Component{
		Type: cdx.ComponentTypeApplication, BOMRef: info.Main.Path, Name: info.Path, Version: version,
		Hashes:     &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: fmt.Sprintf("%x", sum)}},
		PackageURL: purl(info.Main.Path, version),
	}
	parts := []cdx.Component{{Type: cdx.ComponentTypeLibrary, BOMRef: "std", Name: "std", Version: strings.TrimPrefix(info.GoVersion, "go"), PackageURL: purl("std", strings.TrimPrefix(info.GoVersion, "go"))}}
	needs := []string{"std"}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		ref := purl(m.Path, m.Version)
		parts = append(parts, cdx.Component{Type: cdx.ComponentTypeLibrary, BOMRef: ref, Name: m.Path, Version: m.Version, PackageURL: ref})
		needs = append(needs, ref)
	}
	bom := cdx.NewBOM()
	bom.SerialNumber = uuid(sum)
	bom.Metadata = &cdx.Metadata{Timestamp: at.Format(time.RFC3339), Component: &self}
	bom.Components = &parts
	bom.Dependencies = &[]cdx.Dependency{{Ref: self.BOMRef, Dependencies: &needs}}
	return cdx.NewBOMEncoder(to, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6)
}

// purl returns the package URL of a module.
func purl(module, version string) string {
	if version == "" {
		return "pkg:golang/" + module
	}
	return "pkg:golang/" + module + "@" + version
}

// uuid returns a version 8 UUID from a hash, so that the same program has the same UUID.
func uuid(sum [sha256.Size]byte) string {
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}
