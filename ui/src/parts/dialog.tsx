// Owns dialogs: one at a time, above everything, left with Escape, the focus back where it was.
// DI1: what a form asks for is asked once at a time; a refusal is shown in its words, and nothing is lost.

import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { Failed } from "./failure.tsx";

/** Shown as long as it is rendered. `onClose`: Escape, or a click beside it. */
export function Dialog(props: { title: string; onClose: () => void; children: ComponentChildren }) {
  const { title, onClose, children } = props;
  const box = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  useEffect(() => {
    const dialog = box.current;
    const before = document.activeElement;
    dialog?.showModal();
    return () => {
      dialog?.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the key is Escape, and the dialog's own
    <dialog
      ref={box}
      class="dialog"
      aria-labelledby={titleId}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => event.target === box.current && onClose()}
    >
      <div class="dialog-body">
        <h2 id={titleId}>{title}</h2>
        {children}
      </div>
    </dialog>
  );
}

/** Below what a dialog says: what went wrong, the way out of it, and what it offers. */
function Actions(props: { problem?: unknown; onClose: () => void; children: ComponentChildren }) {
  const { problem, onClose, children } = props;
  return (
    <div class="actions">
      {problem !== undefined && <Failed problem={problem} />}
      <button type="button" onClick={onClose}>
        Cancel
      </button>
      {children}
    </div>
  );
}

/** What a dialog asks for. `onSubmit` does it, and closes the dialog when it is done. */
export function Form(props: {
  class?: string;
  children: ComponentChildren;
  /** What the button that does it says. */
  action: string;
  disabled?: boolean;
  onSubmit: () => Promise<void>;
  onClose: () => void;
}) {
  const { class: name, children, action, disabled, onSubmit, onClose } = props;
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<unknown>();
  const submit = (event: Event): void => {
    event.preventDefault();
    setBusy(true);
    setProblem(undefined);
    onSubmit()
      .catch(setProblem)
      .finally(() => setBusy(false));
  };
  return (
    <form class={name} onSubmit={submit}>
      {children}
      <Actions problem={problem} onClose={onClose}>
        <button type="submit" class="primary" disabled={busy || disabled}>
          {action}
        </button>
      </Actions>
    </form>
  );
}

/** A question before something that can't be taken back. */
export function Confirm(props: {
  title: string;
  children: ComponentChildren;
  /** What the button that does it says. */
  action: string;
  onConfirm: () => void;
  onClose: () => void;
}) {
  const { title, children, action, onConfirm, onClose } = props;
  const confirm = (): void => {
    onClose();
    onConfirm();
  };
  return (
    <Dialog title={title} onClose={onClose}>
      {children}
      <Actions onClose={onClose}>
        <button type="button" class="danger" onClick={confirm}>
          {action}
        </button>
      </Actions>
    </Dialog>
  );
}
