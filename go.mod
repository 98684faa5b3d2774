module github.com/seed1158cd35/weir

go 1.26.8
