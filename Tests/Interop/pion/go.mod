// Without this file Go's GOPATH mode does not resolve the /v3 of an import path. Nothing is downloaded: the packages are
// Debian's.
module nagare/pion

go 1.19
