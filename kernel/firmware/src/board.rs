//! What differs between the targets: how a program starts, and what a fault does.

// Start-up code finds these functions by name, and a fault handler is called by the hardware.
#![allow(unsafe_code)]

use semihosting::{eprintln, process};

/// Exit code after a fault of the processor.
const FAULTED: i32 = 102;

fn fault() -> ! {
    eprintln!("the processor has faulted");
    process::exit(FAULTED)
}

#[cfg(target_arch = "arm")]
mod cortex_m {
    // Its critical section is linked by use.
    use cortex_m as _;

    #[cortex_m_rt::entry]
    fn start() -> ! {
        crate::main()
    }

    // SAFETY: it is unsafe as the program that faulted may be in any state; it only prints and ends the program.
    #[cortex_m_rt::exception]
    unsafe fn HardFault(_: &cortex_m_rt::ExceptionFrame) -> ! {
        super::fault()
    }
}

#[cfg(target_arch = "riscv32")]
mod riscv {
    // Its critical section is linked by use.
    use riscv as _;

    #[riscv_rt::entry]
    fn start() -> ! {
        crate::main()
    }

    // SAFETY: the name is one that riscv-rt calls with this signature.
    #[unsafe(no_mangle)]
    extern "C" fn ExceptionHandler(_: &riscv_rt::TrapFrame) -> ! {
        super::fault()
    }
}
