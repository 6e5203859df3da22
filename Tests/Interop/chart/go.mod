// Only names the module. Go's GOPATH mode takes the packages from Debian's. Nothing is downloaded.
module nagare/chart

go 1.19
