#!/bin/sh
# Builds the queue as a shared library: build.sh FOLDER makes FOLDER/libecn_queue.so.
# Needs Verilator (5.006 or newer), make and a C++ compiler.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
verilator --cc --build -Wall -O3 -CFLAGS "-fPIC -O2" -Mdir "$1/model" "$here/ecn_queue.v" > "$1/verilator.log"
include=$(verilator --getenv VERILATOR_ROOT)/include
c++ -std=c++17 -O2 -fPIC -shared -pthread -isystem "$include" -isystem "$include/vltstd" -I "$1/model" \
    -o "$1/libecn_queue.so" "$here/wrapper.cpp" "$1/model/Vecn_queue__ALL.a" \
    "$include/verilated.cpp" "$include/verilated_threads.cpp"
